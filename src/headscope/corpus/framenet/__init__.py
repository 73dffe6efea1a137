"""Which exemplar sentences does a FrameNet release hold, and which frames do they evoke?"""
