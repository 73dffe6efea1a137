"""What is a model asked, and how well does it answer? Tasks, their data, metrics and fine-tuning.

read.read_task ─► TaskData ─► encode.encode ─► Encoded ─► evaluate.outputs ─► metrics.score
checkpoint.load_for_task ─► TaskModel ─► finetune.finetune ─► a checkpoint
"""
