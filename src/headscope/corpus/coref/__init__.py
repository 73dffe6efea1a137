"""Which mentions do CoNLL-2012, CorefUD and GAP mark, and which word is the head of each?"""
