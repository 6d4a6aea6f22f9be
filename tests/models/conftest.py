"""Fixtures of the models' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openai import OpenAI

from tests.models.weights import Publisher, Recorder, make_model
from tests.running_models import RunningModels, running_models
from voxbridge.services.models.weights.manifest import File, Model


@pytest.fixture(scope="session")
def models_service() -> RunningModels:
    """The running service, shared by the session."""
    return running_models()


@pytest.fixture
def openai(models_service: RunningModels) -> Iterator[OpenAI]:
    """OpenAI's own client, pointed at the service."""
    with OpenAI(base_url=models_service.base_url, api_key="unused", max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture
def http(models_service: RunningModels) -> Iterator[httpx.Client]:
    """A plain client of the service."""
    with httpx.Client(base_url=models_service.root, timeout=60) as client:
        yield client


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    """A local web server in place of the publisher's hub."""
    with Publisher() as server:
        yield server


@pytest.fixture
def recorder() -> Recorder:
    """Recorder of a loader's reports."""
    return Recorder()


@pytest.fixture
def model(publisher: Publisher, tmp_path: Path) -> Model:
    """A small model of two files, published by `publisher` and also contained in two local wheels."""
    return make_model(publisher)


@pytest.fixture
def big_file(model: Model) -> File:
    """The file of the model that comes in two parts."""
    return model.files[0]
