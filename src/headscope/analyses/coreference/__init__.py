"""TODO question"""
