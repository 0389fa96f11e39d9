package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidemark-dev/tidemark/shared/gittest/backend"
)

// fleet is the repositories that refsweep watches, and what it told about them.
type fleet struct {
	dir, url string
	moved    string // the one that moves
	secret   string // the Secret that opens them; may be empty

	mu            sync.Mutex
	notifications []notification
	shown         int
}

// notification is what we read of refsweep's CloudEvent.
type notification struct {
	Data struct {
		Moved, Appeared []struct{ Name, Previous, SHA string }
	}
}

var fleetNames = []string{"catalog", "checkout", "delivery"}

func newFleet(root, url string) (*fleet, error) {
	f := &fleet{dir: filepath.Join(root, "fleet"), url: url + "/fleet", moved: fleetNames[1]}
	for _, name := range fleetNames {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return nil, err
		}
		if err := backend.Init(f.repository(name), "sha1"); err != nil {
			return nil, err
		}
		if err := f.commit(name, "first"); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fleet) repository(name string) string { return filepath.Join(f.dir, name+".git") }

// commit makes a commit in one of the repositories, as somebody's push would.
func (f *fleet) commit(name, message string) error {
	stream := fmt.Sprintf("commit refs/heads/main\ncommitter erin <erin@example.com> now\ndata %d\n%s\nM 100644 inline file\ndata %d\n%s\ndone\n", len(message), message, len(message), message)
	if message != "first" {
		stream = strings.Replace(stream, "\nM 100644", "\nfrom refs/heads/main^0\nM 100644", 1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "-C", f.repository(name), "fast-import", "--quiet", "--date-format=now")
	cmd.Env = append(os.Environ(), backend.Environment()...)
	cmd.Stdin = strings.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git fast-import: %w: %s", err, out)
	}
	return nil
}

// targets are the GitRepository documents for refsweep.
func (f *fleet) targets() string {
	var b strings.Builder
	access := ""
	if f.secret != "" {
		access = ", secretRef: {name: " + f.secret + "}"
	}
	for _, name := range fleetNames {
		fmt.Fprintf(&b, "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: %s, namespace: demo}\nspec: {url: %q, ref: {branch: main}, interval: 1m%s}\n", name, f.url+"/"+name+".git", access)
	}
	return b.String()
}

// ServeHTTP takes refsweep's notifications.
func (f *fleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var n notification
	if err = errors.Join(err, json.Unmarshal(body, &n)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notifications = append(f.notifications, n)
}

// show prints what came since the last time.
func (f *fleet) show() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; f.shown < len(f.notifications); f.shown++ {
		n := f.notifications[f.shown].Data
		if len(n.Appeared) > 0 {
			fmt.Printf("            refsweep watches %d repositories\n", len(n.Appeared))
		}
		for _, m := range n.Moved {
			fmt.Printf("            refsweep notices that %s moved from %.7s to %.7s\n", m.Name, m.Previous, m.SHA)
		}
	}
}

// seen says whether every repository was told to have appeared.
func (f *fleet) seen(context.Context) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, note := range f.notifications {
		n += len(note.Data.Appeared)
	}
	return n == len(fleetNames), nil
}

// told says whether a move was told, and what is wrong with how: one repository moved once, and that is one
// notification that names it and no other.
func (f *fleet) told() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var named []string
	for _, n := range f.notifications {
		for _, m := range n.Data.Moved {
			named = append(named, m.Name)
		}
	}
	if len(named) > 1 || len(named) == 1 && named[0] != f.moved {
		return true, fmt.Errorf("refsweep told of moves of %v, and only %s moved, once", named, f.moved)
	}
	return len(named) == 1, nil
}
