"""``compare``: many defences on the same data, with controls that need no proof."""
