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

// coalesce makes one job for all targets of one repository with equal credentials, whatever their Secrets are called. A
// target that cannot be listed as it is described has a job of its own.
func (r *sweepRun) coalesce(targets []Target) []*job {
	var jobs, sound []*job
	for _, t := range targets {
		j := &job{targets: []Target{t}}
		if j.endpoint, j.err = giturl.Parse(t.URL); j.err != nil {
			j.err = AsConfiguration(fmt.Errorf("parsing repository URL: %w", j.err))
		} else {
			j.names, j.err = r.names(t.TrackingRef)
		}
		if j.err != nil {
			jobs = append(jobs, j)
		} else {
			sound = append(sound, j)
		}
	}
	found := r.readCredentials(sound)
	type repository struct {
		url    string
		digest [32]byte
	}
	same := map[repository]*job{}
	for _, j := range sound {
		cred := found[credentialsFor(j)]
		j.credentials, j.err = cred.credentials, cred.err
		key := repository{j.targets[0].URL, j.credentials.Digest()}
		if first, ok := same[key]; ok && j.err == nil {
			first.targets = append(first.targets, j.targets...)
			first.names = union(first.names, j.names)
			continue
		}
		if j.err == nil {
			same[key] = j
		}
		jobs = append(jobs, j)
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
	secret, proxy    types.NamespacedName
	scheme, userinfo string
}

type credentialRead struct {
	credentials *gitauth.Credentials
	err         error
}

func credentialsFor(j *job) credentialKey {
	u := j.endpoint.URL()
	k := credentialKey{scheme: u.Scheme, userinfo: u.User.String()}
	if ref := j.targets[0].SecretRef; ref != nil {
		k.secret = *ref
	}
	if ref := j.targets[0].ProxySecretRef; ref != nil {
		k.proxy = *ref
	}
	return k
}

// readCredentials reads every Secret once and makes the credentials of each kind of job once: reading an encrypted key
// takes a tenth of a second.
func (r *sweepRun) readCredentials(jobs []*job) map[credentialKey]credentialRead {
	found := map[credentialKey]credentialRead{}
	todo := make(chan *job, len(jobs))
	for _, j := range jobs {
		key := credentialsFor(j)
		if _, ok := found[key]; !ok {
			found[key] = credentialRead{}
			todo <- j
		}
	}
	close(todo)
	var mu sync.Mutex
	each(secretReads, len(todo), func() {
		for j := range todo {
			cred, err := r.credentialsOf(r.within, j)
			mu.Lock()
			found[credentialsFor(j)] = credentialRead{cred, err}
			mu.Unlock()
		}
	})
	return found
}

func (r *sweepRun) credentialsOf(ctx context.Context, j *job) (*gitauth.Credentials, error) {
	secret, proxy := j.targets[0].SecretRef, j.targets[0].ProxySecretRef
	var data map[string][]byte
	var err error
	if secret != nil {
		if data, err = r.secrets.get(ctx, *secret); err != nil {
			return nil, err
		}
	}
	cred, err := gitauth.FromSecret(j.endpoint, data)
	if err != nil || proxy == nil {
		return cred, AsConfiguration(err)
	}
	if data, err = r.secrets.get(ctx, *proxy); err != nil {
		return nil, err
	}
	cred, err = cred.WithProxy(data)
	return cred, AsConfiguration(err)
}
