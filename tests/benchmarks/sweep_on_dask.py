#!/usr/bin/env python3
"""What does Dask add to a sweep? 8 chunks of 1000 rows, on two threads and on two workers of this
machine, five times: processor time and wall time. To be reached: a tenth more, at the most.
"""
import resource
import statistics
import time

import stageline as sl
from distributed import Client, LocalCluster

ASKED = {"trace": "resnet50-cpu", "devices": 8, "chunk": 1000, "progress": False,
         "axes": {"schedule": ["1f1b", "zb_h1", "gpipe", "dapple", "zb_h2"],
                  "link": "1GB/s..400GB/s:log40", "microbatches": range(8, 88, 2)}}


def spent():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    ratios = []
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
                      dashboard_address=None) as cluster, Client(cluster) as client:
        sl.sweep(**ASKED, client=client)  # imports, and first looks at the trace
        for _ in range(5):
            ran, begun = spent(), time.monotonic()
            sl.sweep(**ASKED, threads=2)
            threads = spent() - ran, time.monotonic() - begun
            before, ran, begun = client.run(spent), spent(), time.monotonic()
            sl.sweep(**ASKED, client=client)
            wall, caller, after = time.monotonic() - begun, spent() - ran, client.run(spent)
            workers = sum(after[one] - before[one] for one in after)
            ratios.append(wall / threads[1])
            print(f"threads: {threads[0]:.2f} s of processor time, {threads[1]:.2f} s; workers: "
                  f"{workers:.2f} s, the caller with the scheduler {caller:.2f} s, {wall:.2f} s",
                  flush=True)
    print(f"wall time of workers to that of threads, median: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
