from .page import draw_figures as draw_figures
from .page import write_page as write_page
from .reproduce import compare_results as compare_results
from .reproduce import reproduce as reproduce
from .rows import Results as Results
