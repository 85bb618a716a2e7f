import collections.abc

from .budgets import Edits as Edits
from .budgets import difference as difference
from .budgets import edits as edits
from .budgets import withstood as withstood
from .encoder import StatementEncoder as StatementEncoder
from .findings import Scan as Scan
from .findings import ScannedFunction as ScannedFunction
from .findings import StatementVote as StatementVote
from .hashed import features as features
from .hashed import pieces as pieces
from .reading import FunctionGraph as FunctionGraph
from .reading import Functions as Functions
from .reading import functions as functions
from .reading import graph as graph
from .reading import read_functions as read_functions
from .rewrites import greedy_rewrite as greedy_rewrite
from .rewrites import rewritten as rewritten
from .rewrites import worst_edits as worst_edits
from .tokens import normalised as normalised

scan: collections.abc.Callable[..., Scan]  # lives in agnncert.studies, far above this room
