"""``StatementEncoder``: features of statements by a pre-trained encoder on disk, such as GraphCodeBERT.

It encodes each statement separately: in a padded batch, the last bits of the features would depend on the other
statements.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from agnncert.errors import AgnncertError, missing
from agnncert_code.features import FloatArray

LONGEST_STATEMENT = 512  # tokens of the encoder; what is beyond is not seen


class StatementEncoder:
    """A model of the RoBERTa family in a folder, as ``transformers`` saves it. Nothing is ever downloaded.

    Called with normalised texts, it returns one row each: the mean of the last layer over the text's tokens. Pass it as
    ``embed`` to ``to_data`` and ``read_functions``.

    Args:
        folder: Folder with ``config.json``, the tokenizer's files and ``model.safetensors``. Weights in pickles
            (``pytorch_model.bin``) are not opened, because reading a pickle can run any code inside it.

    Raises:
        AgnncertError: ``transformers`` is not installed, or the folder lacks something.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            import transformers
        except ImportError:
            raise missing("transformers", "a pre-trained encoder") from None
        folder = Path(folder)
        absent = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
        if absent:
            raise AgnncertError(
                f"{folder} holds no encoder: {' and '.join(absent)} not found. Save the model there with "
                "model.save_pretrained and its tokenizer with tokenizer.save_pretrained."
            )
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self.model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError) as error:
            raise AgnncertError(f"the encoder in {folder} cannot be read: {error}") from error
        self.model.eval().requires_grad_(False)
        positions = self.model.config.max_position_embeddings - 2  # RoBERTa counts positions from 2
        self.longest = min(LONGEST_STATEMENT, positions)

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Returns features of the texts, shape ``[len(texts), width of the encoder]``."""
        rows = {text: self._row(text) for text in dict.fromkeys(texts)}
        width = int(self.model.config.hidden_size)
        return np.array([rows[text] for text in texts], dtype=np.float32).reshape(len(texts), width)

    def _row(self, text: str) -> FloatArray:
        inputs = self.tokenizer(text, truncation=True, max_length=self.longest, return_tensors="pt")
        states = self.model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state
        return np.asarray(states[0].mean(dim=0).numpy(), dtype=np.float32)
