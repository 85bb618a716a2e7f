"""The audit: may a model be certified, and against which attacks?"""
