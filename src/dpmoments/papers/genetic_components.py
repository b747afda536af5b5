"""Genetic principal components of 1,387 Europeans, fetched from those who published them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmoments.datasets.files import PublishedFile, load

_REPOSITORY = "https://raw.githubusercontent.com/NovembreLab/Novembre_etal_2008_misc/master/files"
_ANALYSIS = f"{_REPOSITORY}/POPRES_08_24_01.EuroThinFinal.LD_0.8.exLD.out0-PCA"
COMPONENTS = PublishedFile("popres.eigs", f"{_ANALYSIS}.eigs", "a81d9a5fdba56f79a23a4d1aa2a5074d")
EIGENVALUES = PublishedFile("popres.eval", f"{_ANALYSIS}.eval", "3b2f9c885d7cdd4e011e4314a3f55052")
COLORS = PublishedFile("popres_color.txt", f"{_REPOSITORY}/POPRESID_Color.txt", "22e680e67c68e161558982a153ed8f92")
N_COMPONENTS = 20


@dataclass(frozen=True, eq=False)
class GeneticComponents:
    """What a principal component analysis of genotypes says of each person; no genotype, no name.

    Attributes
    ----------
    components
        Of shape (n_people, 20): the first eigenvectors of the people's similarity matrix, the people in rows. Each
        column has norm 1.
    eigenvalues
        Of shape (20,): their eigenvalues, falling.
    colors
        For each person an X11 colour name, which stands for a country of origin.
    source
        Where they come from and whom to cite.
    """

    components: NDArray[np.float64] = field(repr=False)
    eigenvalues: NDArray[np.float64] = field(repr=False)
    colors: tuple[str, ...] = field(repr=False)
    source: str


def popres() -> GeneticComponents:
    """Twenty genetic principal components of 1,387 Europeans (POPRES): CoinPress's Map of Europe, section 4.2.

    The three files are fetched once from their publishers, checked and cached in the folder ``dpmoments`` of
    ``$XDG_CACHE_HOME``, by default ``~/.cache``; files of those names in the folder ``DPMOMENTS_DATA`` come first. They are
    about people, and we know of no licence to pass them on: they are **never part of this package**.

    Returns
    -------
    GeneticComponents
        1,387 people.

    Raises
    ------
    ValueError
        If a file is found or downloaded and is not the published one (md5): cut short, changed or damaged. Nothing of a
        wrong download is stored.
    ConnectionError
        If a file is neither in ``DPMOMENTS_DATA`` nor in the cache and cannot be downloaded; the message says where to
        put it.

    Examples
    --------
    >>> from dpmoments.datasets import popres
    >>> popres().components.shape  # doctest: +SKIP
    (1387, 20)
    """
    people = [line.split() for line in _lines(COMPONENTS)[1:]]  # the first line holds rounded eigenvalues
    colors = dict(line.split() for line in _lines(COLORS))
    return GeneticComponents(
        components=np.array([cells[2 : 2 + N_COMPONENTS] for cells in people], dtype=np.float64),
        eigenvalues=np.array(_lines(EIGENVALUES)[:N_COMPONENTS], dtype=np.float64),
        colors=tuple(colors[cells[1]] for cells in people),
        source="Novembre et al. 2008, Genes mirror geography within Europe, Nature 456:98; POPRES (Nelson et al. 2008); "
        "github.com/NovembreLab/Novembre_etal_2008_misc",
    )


def _lines(file: PublishedFile) -> list[str]:
    return load(file).decode("ascii").splitlines()
