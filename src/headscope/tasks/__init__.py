"""Labelled tasks: their data, models with a classification head, predictions and metrics.

task_data.read_task ─► TaskData ─► predict.encode ─► EncodedTask ─► predict.outputs ─► metrics.score
task_model.load_for_task ─► TaskModel
"""
