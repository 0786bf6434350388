"""Figures as Prometheus reads them."""

from collections.abc import Iterable

from metrack.serve.auth import Identity
from metrack.serve.guard import Guard
from metrack.serve.metric import Metric
from metrack.serve.registry import Registry

PER_METRIC = {
    "sequence": ("judgements_acknowledged_total", "counter", "Judgements on the disk."),
    "version": ("judgements_published_total", "counter", "Judgements behind what is read."),
    "pairs": ("pairs_learned_total", "counter", "Pairs learned from."),
    "loss": ("loss", "gauge", "Mean loss of the last 256 pairs."),
    "plain_loss": ("plain_loss", "gauge", "The same of plain distance."),
    "accuracy": ("accuracy", "gauge", "Of the last 256 pairs, the share predicted rightly."),
    "auc": ("auc", "gauge", "Of the last 256 pairs, as they were predicted."),
    "effective_window": ("effective_window_pairs", "gauge", "Pairs that the metric rests on."),
    "last_change": ("last_change_pair", "gauge", "Pair at which a change was last noticed."),
}


def text(registry: Registry, guard: Guard, identity: Identity) -> str:
    """All figures of the metrics that may be read."""
    shown = [m for n, m in sorted(registry.metrics.items()) if identity.may("read", n)]
    return "\n".join([*_of_metrics(shown), *_of_requests(guard)]) + "\n"


def _of_metrics(shown: list[Metric]) -> Iterable[str]:
    described = [metric.described() for metric in shown]
    for field, (name, kind, told) in PER_METRIC.items():
        yield from _head(name, kind, told)
        for each in described:
            if each[field] is not None:
                yield f'metrack_{name}{{metric="{each["name"]}"}} {each[field]:.15g}'
    yield from _head("metric_failed", "gauge", "1 where a metric learns no more.")
    for metric in shown:
        yield f'metrack_metric_failed{{metric="{metric.name}"}} {int(metric.error is not None)}'


def _of_requests(guard: Guard) -> Iterable[str]:
    yield from _head("requests_total", "counter", "Requests by route and status.")
    for (route, status), n in sorted(guard.requests.items()):
        yield f'metrack_requests_total{{route="{route}",status="{status}"}} {n}'
    yield from _head("request_seconds_total", "counter", "Time spent on them.")
    for route, seconds in sorted(guard.seconds.items()):
        yield f'metrack_request_seconds_total{{route="{route}"}} {seconds:.6f}'


def _head(name: str, kind: str, told: str) -> Iterable[str]:
    yield f"# HELP metrack_{name} {told}"
    yield f"# TYPE metrack_{name} {kind}"
