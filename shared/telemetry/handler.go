package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/tidemark-dev/tidemark/shared/host"
	"github.com/tidemark-dev/tidemark/shared/settings"
)

// Paths that Handler answers itself; everything else goes to the function. A function that could be made is ready: it asks
// no store that all copies share, for when that is down, a clear 503 of ours is better than no endpoint at all.
const (
	MetricsPath   = "/metrics"
	ReadinessPath = "/health/readiness"
	LivenessPath  = "/health/liveness"
)

// Options of a Handler; the zero value suits a function that holds nothing.
type Options struct {
	// ReadToken, if configured, is the Bearer token that /metrics wants.
	ReadToken settings.Secret
	// Close releases what the function holds when the process ends.
	Close func(context.Context) error
}

// Handler is a function with its metrics and health endpoints around it. Hosts find Stop on it.
type Handler struct {
	next   http.Handler
	tel    *Telemetry
	opts   Options
	took   *HistogramVec
	ok     func() Observer // took for 200
	panics Counter
}

// Handler puts /metrics, /health/readiness and /health/liveness beside next, measures its requests and turns a panic into 500.
func (t *Telemetry) Handler(next http.Handler, opts Options) *Handler {
	h := &Handler{
		next: next, tel: t, opts: opts,
		took:   t.Histogram("request_duration_seconds", "Time from request to answer, by status code.", Seconds, "code"),
		panics: t.Counter("panics_total", "Requests that ended in a panic.").WithLabelValues(),
	}
	h.ok = sync.OnceValue(func() Observer { return h.took.WithLabelValues(strconv.Itoa(http.StatusOK)) })
	return h
}

// Stop releases what the function holds; hosts call it when the last request is answered.
func (h *Handler) Stop(ctx context.Context) error {
	if h.opts.Close == nil {
		return nil
	}
	return h.opts.Close(ctx)
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case MetricsPath:
		h.serveMetrics(w, r)
	case ReadinessPath:
		fmt.Fprintln(w, "READY")
	case LivenessPath:
		fmt.Fprintln(w, "ALIVE")
	default:
		h.serve(w, r)
	}
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	start, rec := time.Now(), &statusRecorder{ResponseWriter: w}
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // compared by identity, as net/http does
				panic(p)
			}
			h.panics.Inc()
			h.tel.Log.Error("request panicked", "method", r.Method, "error", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			if rec.status == 0 {
				http.Error(rec, "internal error", http.StatusInternalServerError)
			}
		}
		h.observer(rec.code()).Observe(time.Since(start).Seconds())
	}()
	h.next.ServeHTTP(rec, r)
}

// observer is the histogram of a status code; those of ordinary answers are looked up once.
func (h *Handler) observer(code int) Observer {
	if code == http.StatusOK {
		return h.ok()
	}
	return h.took.WithLabelValues(strconv.Itoa(code))
}

func (h *Handler) serveMetrics(w http.ResponseWriter, r *http.Request) {
	may, err := host.MayRead(r, h.opts.ReadToken)
	if err != nil {
		h.tel.Log.Error("READ_TOKEN cannot be read", "error", err)
	}
	if !may {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err := h.tel.metrics.write(w); err != nil {
		h.tel.Log.Error("metrics not written", "error", err)
	}
}

// statusRecorder remembers the status code that was sent.
type statusRecorder struct {
	http.ResponseWriter
	status int
}

func (r *statusRecorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *statusRecorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *statusRecorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
