from .catalog import DATASETS as DATASETS
from .catalog import DatasetInfo as DatasetInfo
from .graphs import GraphSet as GraphSet
from .graphs import dataset_digest as dataset_digest
from .graphs import inductive_view as inductive_view
from .graphs import stratified_split as stratified_split
from .load import load_dataset as load_dataset
from .tables import load_tables as load_tables
