package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
	"github.com/tidemark-dev/tidemark/shared/kube"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
	"github.com/tidemark-dev/tidemark/shared/loopback"
)

const (
	branch = "main"
	path   = "cluster" // the target's folder in the repository
	route  = "demo"
)

// stage is everything around the program: its cluster, its repository, its settings.
type stage struct {
	session   *replay.Session
	clock     *replay.Clock
	api       *replay.Server
	expected  *verdict.Expectation
	resources []schema.GroupResource
	speed     float64
	grace     time.Duration // of real time
	program   string
	token     string   // of the webhooks
	readToken string   // of what tells names; may be empty
	env       []string // more settings
	secretRef string   // the Secret that opens the repository, as YAML; empty: none is needed
	beforeEnd func()   // called before the program is asked to end

	dir           string
	repository    string // on disk
	repositoryURL string
	apiURL        string
	programURL    string
	fleet         *fleet
	sinkURL       string
	servers       []*http.Server
	process       *exec.Cmd
	ended         chan error
}

// controlled are the objects of controllers, which are left out unless all are asked for. Commands (CommitRequests) are
// never mirrored, and Secrets are named and skipped by the program.
var controlled = []string{"pods", "replicasets.apps", "controllerrevisions.apps", "endpoints", "endpointslices.discovery.k8s.io", "events", "events.events.k8s.io", "leases.coordination.k8s.io"}

func newStage(session *replay.Session, o options) (*stage, error) {
	s := &stage{session: session, clock: replay.NewClock(), program: o.program, token: "demo-token", ended: make(chan error, 1)}
	s.api = replay.NewServer(session, s.clock)
	s.clock.Set(session.Begin())
	s.speed = max(1, session.End().Seconds()/o.within.Seconds())
	// An operator sets the grace above the API server's batch wait. Time is compressed, the way to the store is not.
	s.grace = min(time.Duration(float64(lateness(session))/s.speed)+5*time.Second, kube.MaxAttributionGrace)
	for _, w := range session.Watches {
		gr := w.GroupResource()
		if (o.all || !slices.Contains(controlled, gr.String())) && gr.Resource != "commitrequests" && gr.Group != kube.Group {
			s.resources = append(s.resources, gr)
		}
	}
	var err error
	if s.expected, err = verdict.Expect(session, path, s.resources); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "tidemark-demo-"); err != nil {
		return nil, err
	}
	s.repository = filepath.Join(s.dir, "cluster.git")
	if err := backend.Init(s.repository, "sha1"); err != nil {
		return nil, err
	}
	git, err := backend.Handler(s.dir, nil)
	if err != nil {
		return nil, err
	}
	if o.guard != nil {
		git = o.guard(git)
	}
	if s.apiURL, err = s.serve(s.api); err != nil {
		return nil, err
	}
	gitURL, err := s.serve(git)
	if err != nil {
		return nil, err
	}
	s.repositoryURL = gitURL + "/cluster.git"
	if s.fleet, err = newFleet(s.dir, gitURL); err != nil {
		return nil, err
	}
	s.sinkURL, err = s.serve(s.fleet)
	return s, err
}

// lateness is how much longer the slowest event of the audit stream was on its way than the quickest.
func lateness(session *replay.Session) time.Duration {
	first := map[string]time.Duration{} // by audit id: from the API server's stamp to the arrival, but for a constant
	for _, post := range session.Audit {
		var list struct {
			Items []struct {
				AuditID        string    `json:"auditID"`
				StageTimestamp time.Time `json:"stageTimestamp"`
			} `json:"items"`
		}
		if json.Unmarshal(post.Body, &list) != nil {
			continue // a damaged batch brings nothing
		}
		for _, item := range list.Items {
			if item.StageTimestamp.IsZero() {
				continue
			}
			way := post.At - time.Duration(item.StageTimestamp.UnixMilli())*time.Millisecond
			if before, known := first[item.AuditID]; !known || way < before {
				first[item.AuditID] = way
			}
		}
	}
	if len(first) == 0 {
		return 0
	}
	ways := slices.Sorted(maps.Values(first))
	return ways[len(ways)-1] - ways[0]
}

// serve listens on a free port of this machine.
func (s *stage) serve(h http.Handler) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	s.servers = append(s.servers, server)
	go func() { _ = server.Serve(l) }() // ends with Close
	return "http://" + l.Addr().String(), nil
}

// start writes the program's settings and runs it, until it watches everything that it is to mirror.
func (s *stage) start(ctx context.Context) error {
	address, err := loopback.Address()
	if err != nil {
		return err
	}
	s.programURL = "http://" + address

	files := map[string]string{"kubeconfig": s.kubeconfig(), "targets.yaml": s.targets(), "fleet.yaml": s.fleet.targets()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	log, err := os.Create(filepath.Join(s.dir, "allinone.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(s.program) //nolint:noctx // it outlives the start; close ends it
	s.process.Stdout, s.process.Stderr = log, log
	s.process.Env = []string{ // and nothing of whoever runs the demo
		"PATH=" + os.Getenv("PATH"), "LISTEN_ADDRESS=" + address, "FUNCTIONS=auditingest,authorcapture,watchcommit,who,refsweep",
		"KUBECONFIG=" + filepath.Join(s.dir, "kubeconfig"), "TARGETS_FILE=" + filepath.Join(s.dir, "targets.yaml"),
		"AUDIT_TOKENS=" + route + "=" + s.token, "ADMISSION_TOKEN=" + s.token,
		"ATTRIBUTION_GRACE=" + s.grace.String(), "WATCH_WINDOW=1s", "DRAIN_EVERY=50ms",
		"SWEEP_TARGETS_FILE=" + filepath.Join(s.dir, "fleet.yaml"), "SWEEP_EVERY=1s", "K_SINK=" + s.sinkURL,
	}
	s.process.Env = append(s.process.Env, s.env...)
	if err := s.process.Start(); err != nil {
		return fmt.Errorf("run the all-in-one: %w", err)
	}
	go func() { s.ended <- s.process.Wait() }()
	if err := s.until(ctx, time.Minute, "the all-in-one watches the cluster", s.watched); err != nil {
		return err
	}
	return s.until(ctx, 10*time.Second, "refsweep knows its repositories", s.fleet.seen)
}

// watched says whether the program watches everything that is served at the beginning, from a version up to which it has
// written down what there was. What happens from now on is a change, and has an author.
func (s *stage) watched(context.Context) (bool, error) {
	for _, w := range s.session.Watches {
		gr := w.GroupResource()
		if w.ServedFrom > 0 || gr.String() == "secrets" || !slices.Contains(s.resources, gr) {
			continue
		}
		if !s.api.Resumed(gr.String()) {
			return false, nil
		}
	}
	return true, nil
}

// until waits for something, and no longer than the program lives.
func (s *stage) until(ctx context.Context, patience time.Duration, what string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := done(ctx)
		if ok || err != nil {
			return err
		}
		select {
		case err := <-s.ended:
			s.process = nil
			return fmt.Errorf("the all-in-one ended (%w) before %s; its last words:\n%s", err, what, s.lastWords())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s: not within %s; the all-in-one's last words:\n%s", what, patience, s.lastWords())
			}
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// lastWords are the last lines of the program's log.
func (s *stage) lastWords() string {
	log, _ := os.ReadFile(filepath.Join(s.dir, "allinone.log"))
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

func (s *stage) kubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: demo
clusters: [{name: demo, cluster: {server: %q}}]
users: [{name: demo, user: {}}]
contexts: [{name: demo, context: {cluster: demo, user: demo}}]
`, s.apiURL)
}

func (s *stage) targets() string {
	var b strings.Builder
	access := ""
	if s.secretRef != "" {
		access = ", secretRef: " + s.secretRef
	}
	fmt.Fprintf(&b, `apiVersion: tidemark.dev/v1alpha1
kind: GitTarget
metadata: {name: demo}
spec:
  repository: {url: %q, branch: %s, path: %s%s}
  auditRoute: %s
  commit: {committer: {name: Tidemark, email: tidemark@example.com}}
  resources:
`, s.repositoryURL, branch, path, access, route)
	for _, gr := range s.resources {
		fmt.Fprintf(&b, "  - {group: %q, resource: %s}\n", gr.Group, gr.Resource)
	}
	return b.String()
}

// stop asks the program to end.
func (s *stage) stop() error {
	if s.process == nil {
		return nil
	}
	process := s.process
	s.process = nil
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("the all-in-one ended badly: %w", err)
		}
		return nil
	case <-time.After(15 * time.Second):
		return errors.Join(errors.New("the all-in-one did not end within 15 s of SIGTERM"), process.Process.Kill())
	}
}

// close ends what still runs, and removes the folder unless it is wanted.
func (s *stage) close(keep bool) {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = <-s.ended
	}
	s.api.Disconnect()
	for _, server := range s.servers {
		_ = server.Close()
	}
	if keep {
		fmt.Printf("\nThe repository and the log are in %s.\n", s.dir)
		return
	}
	_ = os.RemoveAll(s.dir)
}
