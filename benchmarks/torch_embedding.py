"""What people would write first: a linear embedding, trained by Adam on the latest pairs."""

import numpy as np
import torch

RATES = (0.001, 0.003, 0.01)
RECENT, BATCH = 512, 32


class TorchEmbedding:
    """After each pair a step of Adam, on a minibatch of the latest ones; hinge loss on mu - |Lu|^2.

    Pairs are measured in units of their root mean square so far, as metrack's learners do.
    """

    def __init__(self, rate, n_features, seed=0):
        torch.set_num_threads(1)
        self.rng = np.random.default_rng(seed)
        self.L = torch.eye(n_features, requires_grad=True)
        self.mu = torch.ones((), requires_grad=True)
        self.optimiser = torch.optim.Adam([self.L, self.mu], lr=rate)
        self.u, self.y = np.empty((0, n_features)), np.empty(0)
        self.squares, self.n_seen = 0.0, 0

    def observe(self, pairs, y):
        """Learn, and give the loss on each pair before that, as metrack's learners do."""
        before, losses = len(self.u), []
        self.u = np.concatenate([self.u, pairs[:, 0] - pairs[:, 1]])
        self.y = np.concatenate([self.y, y])
        for last in range(before, len(self.u)):
            self.squares += float(self.u[last] @ self.u[last])
            self.n_seen += 1
            q = float(np.sum((self.components_ @ self.u[last]) ** 2))
            losses.append(max(0.0, 1.0 - self.y[last] * (self.mu.item() - q)))
            self._step(self.rng.integers(max(0, last + 1 - RECENT), last + 1, size=BATCH))
        self.u, self.y = self.u[-RECENT:], self.y[-RECENT:]
        return np.array(losses)

    def _step(self, rows):
        u = torch.from_numpy((self.u[rows] / self._unit()).astype(np.float32))
        y = torch.from_numpy(self.y[rows].astype(np.float32))
        q = ((u @ self.L.T) ** 2).sum(dim=1)
        self.optimiser.zero_grad()
        torch.relu(1.0 - y * (self.mu - q)).mean().backward()
        self.optimiser.step()

    def _unit(self):
        return np.sqrt(self.squares / self.n_seen) or 1.0

    @property
    def components_(self):
        return self.L.detach().numpy().astype(float) / self._unit()
