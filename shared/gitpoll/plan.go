package gitpoll

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
	"github.com/tidemark-dev/tidemark/shared/gitwire"
	"github.com/tidemark-dev/tidemark/shared/selection"
)

const (
	// maxNames is how many refs of a repository are asked for by name before all are listed.
	maxNames = 256
	// secretReads bounds the Secrets read at a time.
	secretReads = 16
)

// job is one listing, for one target or for all that share a repository and credentials.
type job struct {
	targets []Target
	err     error // known before anything is asked

	// For a WireLister.
	endpoint    *giturl.Endpoint
	credentials *gitauth.Credentials
	names       []string
}

// plan makes the jobs of each host.
func (r *sweepRun) plan(targets []Target) (hosts []string, jobs map[string][]*job) {
	var all []*job
	if _, ok := r.Lister.(*WireLister); ok {
		all = r.coalesce(targets)
	} else {
		for _, t := range targets {
			all = append(all, &job{targets: []Target{t}})
		}
	}
	if !r.Until.IsZero() {
		// No target is always the last of a sweep that runs out of time.
		rand.Shuffle(len(all), func(a, b int) { all[a], all[b] = all[b], all[a] })
	}
	jobs = map[string][]*job{}
	for _, j := range all {
		host := hostOf(j.targets[0].URL)
		if _, ok := jobs[host]; !ok {
			hosts = append(hosts, host)
		}
		jobs[host] = append(jobs[host], j)
	}
	return hosts, jobs
}

// coalesce makes one job for all targets of one repository with equal credentials, whatever their Secrets are called.
func (r *sweepRun) coalesce(targets []Target) []*job {
	found := r.readCredentials(targets)
	type repository struct {
		url    string
		digest [32]byte
	}
	var jobs []*job
	same := map[repository]*job{}
	for _, t := range targets {
		cred := found[credentialsFor(t)]
		endpoint, err := giturl.Parse(t.URL)
		if err != nil {
			err = AsConfiguration(fmt.Errorf("parsing repository URL: %w", err))
		}
		names, nameErr := r.names(t.TrackingRef)
		for _, e := range []error{err, cred.err, nameErr} {
			if e != nil {
				jobs = append(jobs, &job{targets: []Target{t}, err: e})
				endpoint = nil
				break
			}
		}
		if endpoint == nil {
			continue
		}
		key := repository{t.URL, cred.credentials.Digest()}
		if j, ok := same[key]; ok {
			j.targets = append(j.targets, t)
			j.names = union(j.names, names)
			continue
		}
		same[key] = &job{targets: []Target{t}, endpoint: endpoint, credentials: cred.credentials, names: names}
		jobs = append(jobs, same[key])
	}
	return jobs
}

// names are the refs to ask for, nil for all. A name that no repository can hold is refused before anything is asked.
func (r *sweepRun) names(trackingRef string) ([]string, error) {
	narrower, ok := r.Strategy.(selection.Narrower)
	if !ok {
		return nil, nil
	}
	names := narrower.Narrow(trackingRef)
	if slices.Contains(names, trackingRef) {
		if err := gitwire.CheckRefName(trackingRef); err != nil {
			return nil, AsConfiguration(fmt.Errorf("tracking ref %.100q: %w", trackingRef, err))
		}
	}
	return names, nil
}

// union asks for what either asks for.
func union(a, b []string) []string {
	if len(a) == 0 || len(b) == 0 || len(a)+len(b) > maxNames {
		return nil
	}
	u := slices.Clone(a)
	for _, name := range b {
		if !slices.Contains(u, name) {
			u = append(u, name)
		}
	}
	return u
}

// credentialKey tells apart what credentials are made of: the Secrets, and what of the URL enters.
type credentialKey struct {
	secret, proxy types.NamespacedName
	ssh           bool
	userinfo      string
}

type credentialRead struct {
	credentials *gitauth.Credentials
	err         error
}

func credentialsFor(t Target) credentialKey {
	var k credentialKey
	if t.SecretRef != nil {
		k.secret = *t.SecretRef
	}
	if t.ProxySecretRef != nil {
		k.proxy = *t.ProxySecretRef
	}
	if ep, err := giturl.Parse(t.URL); err == nil {
		u := ep.URL()
		k.ssh, k.userinfo = ep.IsSSH(), u.User.String()
	}
	return k
}

// readCredentials reads every Secret once and makes the credentials of each kind of target once: reading an encrypted
// key takes a tenth of a second.
func (r *sweepRun) readCredentials(targets []Target) map[credentialKey]credentialRead {
	found := map[credentialKey]credentialRead{}
	var todo []Target
	for _, t := range targets {
		key := credentialsFor(t)
		if _, ok := found[key]; !ok {
			found[key] = credentialRead{}
			todo = append(todo, t)
		}
	}
	var mu sync.Mutex
	each(secretReads, len(todo), func() {
		for {
			mu.Lock()
			if len(todo) == 0 {
				mu.Unlock()
				return
			}
			t := todo[0]
			todo = todo[1:]
			mu.Unlock()
			cred, err := r.credentialsOf(r.within, t)
			mu.Lock()
			found[credentialsFor(t)] = credentialRead{cred, err}
			mu.Unlock()
		}
	})
	return found
}

func (r *sweepRun) credentialsOf(ctx context.Context, t Target) (*gitauth.Credentials, error) {
	endpoint, err := giturl.Parse(t.URL)
	if err != nil {
		return nil, AsConfiguration(fmt.Errorf("parsing repository URL: %w", err))
	}
	var data map[string][]byte
	if t.SecretRef != nil {
		if data, err = r.secrets.get(ctx, *t.SecretRef); err != nil {
			return nil, err
		}
	}
	cred, err := gitauth.FromSecret(endpoint, data)
	if err != nil || t.ProxySecretRef == nil {
		return cred, AsConfiguration(err)
	}
	if data, err = r.secrets.get(ctx, *t.ProxySecretRef); err != nil {
		return nil, err
	}
	cred, err = cred.WithProxy(data)
	return cred, AsConfiguration(err)
}
