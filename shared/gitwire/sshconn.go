package gitwire

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// maxSessions is how many sessions run on one connection at a time; OpenSSH allows ten.
const maxSessions = 8

// sshIdle is how long an unused connection stays open.
const sshIdle = 3 * time.Minute

// A connection that was idle for checkAfter is asked for a sign of life before it is used again: it may have been
// dropped on the way without a word, while the process was frozen or not.
const (
	checkAfter   = 20 * time.Second
	checkTimeout = 3 * time.Second
	// lossGrace is how long the end of a connection may take to show after a session failed on it.
	lossGrace = 250 * time.Millisecond
)

// errNoIdentity is an SSH URL without credentials.
var errNoIdentity = errors.New("SSH needs an identity and known_hosts")

// errConnLost is a shared connection that gave no sign of life.
var errConnLost = errors.New("connection lost")

// sshKey tells connections apart: the same server, user and credentials share one.
type sshKey struct {
	address, user string
	cred          [sha256.Size]byte
}

// sshConn is one connection, dialled once by whoever needs it first.
type sshConn struct {
	ready  chan struct{} // closed when dialling has ended
	err    error         // of dialling
	left   bool          // whoever dialled went away, or had no time left, before it ended
	client *ssh.Client
	slots  chan struct{}
	once   sync.Once
	gone   chan struct{} // closed when the connection is lost or closed

	mu       sync.Mutex
	sessions int
	idle     *time.Timer
	idleFrom time.Time
}

// enter counts a session. It reports whether the connection should show a sign of life first.
func (c *sshConn) enter() (check bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.idle != nil {
		c.idle.Stop()
	}
	check = c.sessions == 0 && !c.idleFrom.IsZero() && time.Since(c.idleFrom) > checkAfter
	c.sessions++
	return check
}

// leave ends a session; the last one starts the clock, or closes a connection that is not shared.
func (c *sshConn) leave(shared bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions--
	if c.sessions > 0 {
		return
	}
	if !shared {
		go c.close()
		return
	}
	c.idleFrom = time.Now()
	c.idle = time.AfterFunc(sshIdle, func() {
		c.mu.Lock()
		unused := c.sessions == 0
		c.mu.Unlock()
		if unused {
			c.close()
		}
	})
}

// lost says whether a failed session was the connection's end, which may show a moment later.
func (c *sshConn) lost() bool {
	select {
	case <-c.gone:
		return true
	case <-time.After(lossGrace):
		return false
	}
}

// alive asks for a sign of life. Any answer is one, also a refusal.
func (c *sshConn) alive(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-ctx.Done():
		return false
	}
}

func (c *sshConn) close() {
	<-c.ready
	c.once.Do(func() {
		if c.client != nil {
			_ = c.client.Close() // nothing is left to lose on it
		}
	})
}

// sshClient returns the shared connection, dialling it if there is none. fresh says that this call dialled it.
func (p *Pool) sshClient(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials) (conn *sshConn, fresh bool, err error) {
	if cred.SSH() == nil {
		return nil, false, errNoIdentity
	}
	key := sshKey{ep.Address(), ep.User(), cred.Digest()}
	shared := cred.SSH().Shareable()
	p.mu.Lock()
	conn, ok := p.ssh[key]
	if ok = ok && shared; !ok {
		conn = &sshConn{ready: make(chan struct{}), slots: make(chan struct{}, maxSessions), gone: make(chan struct{})}
		if p.ssh == nil {
			p.ssh = map[sshKey]*sshConn{}
		}
		if shared {
			p.ssh[key] = conn
		}
	}
	p.mu.Unlock()
	if !ok {
		conn.client, conn.err = dialSSH(ctx, ep, cred)
		conn.left = ctx.Err() != nil
		if conn.err != nil {
			p.forget(key, conn) // before anybody who waits looks for another
			close(conn.ready)
			return nil, true, conn.err
		}
		close(conn.ready)
		go func() {
			_ = conn.client.Wait() // its error is what the sessions report
			close(conn.gone)
			p.forget(key, conn)
		}()
		return conn, true, nil
	}
	select {
	case <-conn.ready:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if conn.err != nil && conn.left && ctx.Err() == nil {
		return p.sshClient(ctx, ep, cred) // that says nothing about the server
	}
	return conn, false, conn.err
}

// forget takes a connection out of the pool, unless another has taken its place.
func (p *Pool) forget(key sshKey, conn *sshConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ssh[key] == conn {
		delete(p.ssh, key)
	}
}

// dialSSH connects and authenticates. The deadline sits on the connection: the handshake of the ssh package knows
// no context.
func dialSSH(ctx context.Context, ep *giturl.Endpoint, cred *gitauth.Credentials) (*ssh.Client, error) {
	config, err := cred.SSH().ClientConfig(ep.User(), ep.Host(), ep.Port())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	nc, err := dialThrough(ctx, cred, ep.Address())
	if err != nil {
		return nil, transportError(ctx, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.SetDeadline(time.Unix(1, 0)) })
	c, chans, reqs, err := ssh.NewClientConn(nc, ep.Address(), config)
	if err != nil {
		stop()
		_ = nc.Close()
		err = transportError(ctx, err)
		if strings.Contains(err.Error(), "ssh: unable to authenticate") { // the ssh package has no type for it
			err = fmt.Errorf("%w: %w", gitauth.ErrRefused, err)
		}
		return nil, fmt.Errorf("ssh handshake: %w", err)
	}
	if !stop() {
		_ = c.Close()
		return nil, ctx.Err()
	}
	_ = nc.SetDeadline(time.Time{}) // sessions have deadlines of their own
	return ssh.NewClient(c, chans, reqs), nil
}
