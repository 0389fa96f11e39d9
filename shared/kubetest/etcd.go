package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Compact makes etcd forget every version but the newest ones, and the API server forget what it had in memory: no
// older resourceVersion can be watched or read after it.
func (c *Cluster) Compact() {
	c.t.Helper()
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	c.must(c.askEtcd("/v3/kv/range", map[string]any{"key": base64Text([]byte("/"))}, &now))
	c.must(c.askEtcd("/v3/kv/compaction", map[string]any{"revision": now.Header.Revision, "physical": true}, nil))
	c.RestartAPIServer()
}

// askEtcd uses etcd's JSON gateway.
func (c *Cluster) askEtcd(path string, question, answer any) error {
	raw, err := json.Marshal(question)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("etcd %s: %w", path, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("etcd %s: %w", path, err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd %s: %s: %s", path, resp.Status, body)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(body, answer)
}

// Backup is a copy of the cluster's whole store.
type Backup struct{ dir string }

// Backup stops the control plane, copies its store and starts it again.
func (c *Cluster) Backup() Backup {
	c.t.Helper()
	b := Backup{dir: c.t.TempDir() + "/etcd"}
	c.whileStopped(func() error { return os.CopyFS(b.dir, os.DirFS(c.file("etcd"))) })
	return b
}

// Restore brings the cluster back to the backup: what happened since never did, and resourceVersions are used again.
func (c *Cluster) Restore(b Backup) {
	c.t.Helper()
	c.whileStopped(func() error {
		if err := os.RemoveAll(c.file("etcd")); err != nil {
			return err
		}
		return os.CopyFS(c.file("etcd"), os.DirFS(b.dir))
	})
}

func (c *Cluster) whileStopped(do func() error) {
	c.t.Helper()
	c.apiserver.stop()
	c.etcd.stop()
	c.must(do())
	c.must(c.etcd.start())
	c.must(c.apiserver.start())
	c.waitReady()
}
