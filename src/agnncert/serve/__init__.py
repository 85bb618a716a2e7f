"""A live graph as a service: events come in, decisions and their proof go out, over HTTP.

``service`` is what it does, ``http`` how it is asked, ``guard`` who may ask and how much, ``start`` how it begins from
a run folder, ``client`` a small client.
"""
