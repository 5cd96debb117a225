"""What the times of a data loader say: how long batches took, and which took much longer than the others."""

from typing import Any, Dict, List, Sequence, Tuple

_MOST = 100  # outliers of a track


def findings(rows: Sequence[Dict[str, Any]], percentile: Any, factor: float) -> List[Dict[str, Any]]:
    """For each worker and track: ``data_wait``, for which the loop waited, and ``dataloader/<n>``, of a loading process. An outlier took at least
    ``factor`` medians. ``batch_*``: the time between the begins of two that follow each other. Times in us."""
    tracks: Dict[Tuple[str, str], List[Dict[str, Any]]] = {}
    for row in rows:
        own = str(row["tid"]).startswith("dataloader/")
        if own or row["framework_metric"] == "data_wait":
            tracks.setdefault((str(row["process"]), str(row["tid"]) if own else "data_wait"), []).append(row)
    out = []
    for (process, track), found in sorted(tracks.items()):
        found.sort(key=lambda row: row["start_time_us"])
        times = [row["end_time_us"] - row["start_time_us"] for row in found]
        batches = [after["start_time_us"] - row["start_time_us"] for row, after in zip(found, found[1:])]
        middle = percentile(times, 50)
        late = [{"step": row["step"], "start_time_us": row["start_time_us"], "end_time_us": row["end_time_us"], "duration_in_us": took}
                for row, took in zip(found, times) if took >= factor * middle > 0]
        out.append({"process": process, "track": track, "count": len(found), "loading_processes": len({key[1] for key in tracks if key[0] == process} - {"data_wait"}),
                    "duration_p50_in_us": middle, "duration_max_in_us": max(times), "batch_p50_in_us": percentile(batches, 50),
                    "batch_max_in_us": max(batches, default=None), "outliers": len(late), "longest": sorted(late, key=lambda one: -one["duration_in_us"])[:_MOST]})
    return out
