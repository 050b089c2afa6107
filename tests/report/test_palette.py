"""Ten colours that stay apart for every eye, on white and on black."""

import re

import numpy as np
import pytest

from cocoloss.report.markup import asset

# What dichromats see, in linear RGB (Machado, Oliveira and Fernandes 2009, severity 1).
EYES = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
# OKLab (Ottosson 2020): distances in it are differences as seen.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(text):
    values = np.array([int(text[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def schemes():
    css = asset("page.css")
    light, dark = (
        css[: css.index("prefers-color-scheme: dark")],
        css[css.index("prefers-color-scheme: dark") :],
    )
    for part in (light, dark):
        surface = re.search(r"--surface: (#\w{6})", part)[1]
        yield linear(surface), np.stack([linear(c) for c in re.findall(r"--c\d: (#\w{6})", part)])


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
def test_no_two_classes_look_alike(scheme, eye):
    _, colours = list(schemes())[scheme]
    assert len(colours) == 10
    seen = np.clip(colours @ np.array(EYES[eye]).T, 0, 1)
    lab = np.cbrt(seen @ TO_CONES.T) @ TO_LAB.T
    gaps = np.linalg.norm(lab[:, None] - lab, axis=-1) + np.eye(10)
    assert gaps.min() > 0.08  # the eight colours of Okabe and Ito reach 0.076


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_every_class_stands_out_from_the_ground(scheme):
    surface, colours = list(schemes())[scheme]
    light = np.array([0.2126, 0.7152, 0.0722])
    a, b = colours @ light + 0.05, surface @ light + 0.05
    assert (np.maximum(a, b) / np.minimum(a, b)).min() > 2.5
