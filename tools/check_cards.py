"""Check that the library of the Hugging Face hub reads the cards of output folders.

usage: check_cards.py DATA_FOLDER MODEL_FOLDER     (needs huggingface_hub)

DATA_FOLDER is an output folder of `melm augment`, MODEL_FOLDER one of `melm train`.
"""
import sys

from huggingface_hub import DatasetCard, ModelCard


def main(data_folder, model_folder):
    data = DatasetCard.load(f"{data_folder}/README.md").data.to_dict()
    assert data["task_categories"] == ["token-classification"], data
    assert data["task_ids"] == ["named-entity-recognition"], data
    assert data["size_categories"] == ["n<1K"], data
    assert data["entity_types"], data
    assert "license" not in data, data
    model = ModelCard.load(f"{model_folder}/README.md").data.to_dict()
    assert model["pipeline_tag"] == "token-classification", model
    assert model["entity_types"] == data["entity_types"], model
    print("huggingface_hub reads the cards")


if __name__ == "__main__":
    main(*sys.argv[1:])
