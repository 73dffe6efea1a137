"""What does fine-tuning change in the heads of a model?"""
