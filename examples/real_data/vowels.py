"""
Vowels and consonants, found by a machine
=========================================

In 1913 Andrei Markov counted vowels and consonants in a poem by Pushkin. A hidden Markov model goes the other way:
given nothing but letters in a row, which two kinds of letters explain them best? The text here is the descriptions of
data sets that come with scikit-learn.
"""

# %%
# Letters and blanks, everything else left out.

import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn import datasets

from codiag.models import HiddenMarkov

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

names = ("iris", "wine", "breast_cancer", "digits", "diabetes", "linnerud")
text = " ".join(getattr(datasets, f"load_{name}")().DESCR for name in names)
text = re.sub(r"[^a-z]+", " ", text.lower())
letters = np.array(list(text))
print(f"{letters.size} letters: {text[200:260]} ...")

# %%
# Two states. The model is told neither the alphabet's order nor what a vowel is.

alphabet, symbols = np.unique(letters, return_inverse=True)
model = HiddenMarkov(2, max_iter=50, random_state=0).fit(symbols)
print("transitions\n", model.transmat_.round(2))

# %%
# How typical is a letter of one of the two states? Letters are sorted by it, and the height of a bar is how frequent
# they are in the text. One end has the vowels and the blank, which takes their place between consonants; the other end
# has the consonants. States alternate, as syllables do.

stationary = model.get_stationary_distribution()
joint = model.emissionprob_ * stationary[:, None]
vowel_state = int(np.argmax(model.emissionprob_[:, list(alphabet).index("e")]))
typical = joint[vowel_state] / joint.sum(axis=0)
order = np.argsort(-typical)
figure, axis = plt.subplots(figsize=(9.5, 4.2), layout="constrained")
frequency = joint.sum(axis=0)[order]
axis.bar(range(order.size), frequency * typical[order], color=COLORS[1], label="state 1")
axis.bar(
    range(order.size),
    frequency * (1 - typical[order]),
    bottom=frequency * typical[order],
    color=COLORS[0],
    label="state 2",
)
axis.set_xticks(range(order.size), [letter.replace(" ", "␣") for letter in alphabet[order]], fontsize=13)
for tick, letter in zip(axis.get_xticklabels(), alphabet[order], strict=True):
    tick.set(color=COLORS[1] if letter in "aeiou " else "black", fontweight="bold" if letter in "aeiou " else "normal")
axis.set(title="Letters by state; true vowels and the blank in orange below", ylabel="share of the text")
axis.legend(frameon=False)
plt.show()
