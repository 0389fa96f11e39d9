package gitpoll

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/fluxcd/pkg/git"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	gitssh "github.com/go-git/go-git/v5/plumbing/transport/ssh"
	"golang.org/x/crypto/ssh"

	"github.com/tidemark-dev/tidemark/shared/gitauth"
	"github.com/tidemark-dev/tidemark/shared/giturl"
)

// AuthFromSecret turns the data of a GitRepository's Secret, read by source-controller's own parser, into go-git's
// authentication: *http.BasicAuth, *http.TokenAuth, an ssh.AuthMethod, or nil for anonymous HTTP. SSH needs an
// identity and known_hosts; those of the machine are never used.
//
// Trust, client certificates, proxies and GitHub Apps have no place in an AuthMethod: gitauth.FromSecret has them.
//
// Errors begin with "parsing repository URL: ", "building auth options: ", "parsing SSH identity: " or "parsing
// known_hosts: ".
func AuthFromSecret(repoURL string, data map[string][]byte) (transport.AuthMethod, error) {
	u, err := authURL(repoURL)
	if err != nil {
		return nil, fmt.Errorf("parsing repository URL: %w", err)
	}
	options, err := git.NewAuthOptions(u, data)
	if err != nil {
		return nil, fmt.Errorf("building auth options: %w", err)
	}
	switch {
	case options.Transport == git.SSH:
		identity, err := gitauth.NewSSH(options.Identity, options.Password, options.KnownHosts)
		if err != nil {
			return nil, err
		}
		return &sshAuth{user: options.Username, host: u.Hostname(), port: u.Port(), identity: identity}, nil
	case options.Username != "" || options.Password != "":
		return &githttp.BasicAuth{Username: options.Username, Password: options.Password}, nil
	case options.BearerToken != "":
		return &githttp.TokenAuth{Token: options.BearerToken}, nil
	}
	return nil, nil
}

// authURL is the URL for source-controller's parser, which says itself what it thinks of other schemes.
func authURL(repoURL string) (url.URL, error) {
	if ep, err := giturl.Parse(repoURL); err == nil {
		return ep.URL(), nil
	}
	u, err := url.Parse(repoURL)
	if err != nil {
		return url.URL{}, giturl.ErrSyntax // the error of url.Parse repeats the URL
	}
	switch strings.ToLower(u.Scheme) {
	case giturl.HTTPS, giturl.HTTP, giturl.SSH:
		return url.URL{}, giturl.ErrHost
	}
	return *u, nil
}

// sshAuth is an SSH identity with the host keys it trusts, as go-git takes it.
type sshAuth struct {
	user, host, port string
	identity         *gitauth.SSH
}

var _ gitssh.AuthMethod = (*sshAuth)(nil)

func (a *sshAuth) Name() string   { return gitssh.PublicKeysName }
func (a *sshAuth) String() string { return "name: " + a.Name() }

// ClientConfig implements go-git's ssh.AuthMethod.
func (a *sshAuth) ClientConfig() (*ssh.ClientConfig, error) {
	port := a.port
	if port == "" {
		port = "22"
	}
	return a.identity.ClientConfig(a.user, a.host, port)
}

// credentialsOf turns an AuthMethod back into what gitwire needs. Without one, the URL's own userinfo counts.
func credentialsOf(ep *giturl.Endpoint, auth transport.AuthMethod) (*gitauth.Credentials, error) {
	var none *gitauth.Credentials
	switch a := auth.(type) {
	case nil:
		u := ep.URL()
		if password, ok := u.User.Password(); !ep.IsSSH() && (ok || u.User.Username() != "") {
			return gitauth.Basic(u.User.Username(), password), nil
		}
		return none, nil
	case *githttp.BasicAuth:
		if a == nil {
			return none, nil
		}
		return gitauth.Basic(a.Username, a.Password), nil
	case *githttp.TokenAuth:
		if a == nil {
			return none, nil
		}
		return gitauth.Bearer(a.Token), nil
	case *sshAuth:
		return none.WithSSH(a.identity), nil
	case gitssh.AuthMethod:
		return none.WithSSH(gitauth.SSHFromConfig(a.ClientConfig)), nil
	}
	return nil, transport.ErrInvalidAuthMethod
}
