"""Features of statements from a pre-trained encoder on disk, such as GraphCodeBERT.

Each statement is encoded by itself. In a batch it would be padded to the length of the longest, and its features would,
in their last bits, depend on its neighbours: then one attacked statement would change others.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from agnncert.code.hashed import FloatArray
from agnncert.errors import AgnncertError

LONGEST = 512  # tokens of the encoder; what is beyond is not seen


class StatementEncoder:
    """A model of the RoBERTa family in a folder, as ``transformers`` saves it; nothing is ever downloaded.

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
            raise AgnncertError("a pre-trained encoder needs transformers: pip install 'agnncert[codebert]'.") from None
        folder = Path(folder)
        missing = [name for name in ("config.json", "model.safetensors") if not (folder / name).is_file()]
        if missing:
            raise AgnncertError(
                f"{folder} holds no encoder: {' and '.join(missing)} not found. Save the model there with "
                "model.save_pretrained and its tokenizer with tokenizer.save_pretrained."
            )
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            self.model = transformers.AutoModel.from_pretrained(folder, local_files_only=True, use_safetensors=True)
        except (OSError, ValueError) as error:
            raise AgnncertError(f"the encoder in {folder} cannot be read: {error}") from error
        self.model.eval()
        positions = self.model.config.max_position_embeddings - 2  # RoBERTa counts positions from 2
        self.longest = min(LONGEST, positions)

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Features of the texts, shape ``[len(texts), width of the encoder]``."""
        rows = {text: self._row(text) for text in dict.fromkeys(texts)}
        width = int(self.model.config.hidden_size)
        return np.array([rows[text] for text in texts], dtype=np.float32).reshape(len(texts), width)

    @torch.no_grad()
    def _row(self, text: str) -> FloatArray:
        inputs = self.tokenizer(text, truncation=True, max_length=self.longest, return_tensors="pt")
        states = self.model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"]).last_hidden_state
        return np.asarray(states[0].mean(dim=0).numpy(), dtype=np.float32)
