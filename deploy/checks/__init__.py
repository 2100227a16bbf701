"""What deploy/validate checks. Each module yields `Problem`s about one part of deploy/ and changes nothing.

The checks read a `Tree`, never a path of their own, so that checks/teeth.py can run them on a broken copy.
"""
