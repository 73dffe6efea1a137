"""Does cross-attention say which word translates which (Kobayashi et al. 2020, §5)?"""
