package gittest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// spy is a test that notes its failures instead of failing.
type spy struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (s *spy) Helper()                      {}
func (s *spy) Cleanup(f func())             { s.cleanups = append(s.cleanups, f) }
func (s *spy) Errorf(f string, args ...any) { s.failures = append(s.failures, fmt.Sprintf(f, args...)) }

func (s *spy) end() {
	for len(s.cleanups) > 0 {
		last := len(s.cleanups) - 1
		s.cleanups[last]()
		s.cleanups = s.cleanups[:last]
	}
}

func TestADamagedRepositoryFailsItsTest(t *testing.T) {
	sound := &spy{TB: t}
	server := NewServer(sound)
	server.Repository("cfg.git").Commit("main", "m", map[string]string{"a": "1"})
	sound.end()
	if len(sound.failures) != 0 {
		t.Errorf("a sound repository: got %v", sound.failures)
	}
	damaged := &spy{TB: t}
	server = NewServer(damaged)
	repo := server.Repository("cfg.git")
	repo.Commit("main", "m", map[string]string{"a": "1"})
	blob := repo.Git("rev-parse", "main:a")
	if err := os.Remove(filepath.Join(repo.Dir, "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	damaged.end()
	if len(damaged.failures) != 1 || !strings.Contains(damaged.failures[0], "missing blob "+blob) {
		t.Errorf("a damaged repository: got %q, want that the blob is missing", damaged.failures)
	}
}
