"""Fine-tune a model on a task with transformers' Trainer."""
