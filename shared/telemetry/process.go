package telemetry

import (
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// writeProcess writes what is known of the process itself, under the names that Prometheus' dashboards look for.
func writeProcess(started time.Time) func(io.Writer) error {
	return func(w io.Writer) error {
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		var b []byte
		for _, m := range []struct {
			name, kind, help string
			value            float64
		}{
			{"go_goroutines", kindGauge, "Number of goroutines.", float64(runtime.NumGoroutine())},
			{"go_memstats_alloc_bytes_total", kindCounter, "Bytes allocated in the heap since the start.", float64(mem.TotalAlloc)},
			{"go_memstats_heap_inuse_bytes", kindGauge, "Bytes of the heap in use.", float64(mem.HeapInuse)},
			{"go_memstats_mallocs_total", kindCounter, "Allocations since the start.", float64(mem.Mallocs)},
			{"process_cpu_seconds_total", kindCounter, "Processor time used, in seconds.", cpuSeconds()},
			{"process_resident_memory_bytes", kindGauge, "Resident memory.", residentBytes()},
			{"process_start_time_seconds", kindGauge, "When the process started, in seconds since 1970.", float64(started.UnixNano()) / 1e9},
		} {
			f := &family{name: m.name, help: m.help, kind: m.kind, series: map[string]*series{}}
			f.with(nil).value.store(m.value)
			b = f.append(b)
		}
		_, err := w.Write(b)
		return err
	}
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// residentBytes is 0 where there is no /proc.
func residentBytes() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}
