from .cluster import Ray as Ray
from .disk import open_graph as open_graph
from .disk import write_graph as write_graph
from .parquet import convert_parquet as convert_parquet

__version__: str
