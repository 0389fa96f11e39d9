package gitauth

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The keys of a Secret that holds a GitHub App.
const (
	keyAppID             = "githubAppID"
	keyInstallationID    = "githubAppInstallationID"
	keyInstallationOwner = "githubAppInstallationOwner"
	keyAppPrivateKey     = "githubAppPrivateKey"
	keyAppBaseURL        = "githubAppBaseURL"
)

const (
	githubAPI = "https://api.github.com"
	// appUser is the user name that goes with an installation's token.
	appUser = "x-access-token"
	// appTimeout bounds one call of the API.
	appTimeout = 10 * time.Second
	// renewBefore is how long before its end a token is replaced.
	renewBefore = 5 * time.Minute
)

// githubApp mints installation tokens.
type githubApp struct {
	id, installation, owner string
	base                    string
	key                     *rsa.PrivateKey
	digest                  [sha256.Size]byte
	client                  *http.Client
}

func fromApp(id []byte, data map[string][]byte) (*Credentials, error) {
	app := &githubApp{
		id:           strings.TrimSpace(string(id)),
		installation: strings.TrimSpace(string(data[keyInstallationID])),
		owner:        strings.TrimSpace(string(data[keyInstallationOwner])),
		base:         githubAPI,
	}
	if app.id == "" || (app.installation == "") == (app.owner == "") {
		return nil, fmt.Errorf("parsing GitHub App: %s and one of %s and %s are needed", keyAppID, keyInstallationID, keyInstallationOwner)
	}
	if given := strings.TrimRight(strings.TrimSpace(string(data[keyAppBaseURL])), "/"); given != "" {
		u, err := url.Parse(given)
		if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("parsing GitHub App: %s must be an https or http URL without user", keyAppBaseURL)
		}
		app.base = given
	}
	var err error
	if app.key, err = rsaKey(data[keyAppPrivateKey]); err != nil {
		return nil, fmt.Errorf("parsing GitHub App: %s: %w", keyAppPrivateKey, err)
	}
	app.digest = digest([]byte(app.id), []byte(app.installation), []byte(app.owner), []byte(app.base), data[keyAppPrivateKey])
	var none *Credentials
	c, err := none.WithTLS(caBundle(data), data["tls.crt"], data["tls.key"])
	if err != nil {
		return nil, err
	}
	c = c.clone()
	c.app = app.through(c)
	c.seal()
	return c, nil
}

func rsaKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("no PEM in it")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("not an RSA private key")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("not an RSA private key")
	}
	return key, nil
}

// through is the app calling its API with the trust and proxy of c.
func (a *githubApp) through(c *Credentials) *githubApp {
	b := *a
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	if c.tls != nil {
		transport.TLSClientConfig = c.tls.Clone()
	}
	if c.proxy != nil {
		transport.Proxy = http.ProxyURL(c.proxy)
	}
	b.client = &http.Client{
		Transport:     transport,
		Timeout:       appTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &b
}

// appTokens are the tokens of this process, each until shortly before it expires. They are nowhere else.
var appTokens struct {
	mu   sync.Mutex
	held map[[sha256.Size]byte]*appToken
}

type appToken struct {
	turn    chan struct{} // holds whoever mints: one request serves all who wait
	token   string
	expires time.Time
}

// token returns the installation's token, minted if there is none that lasts.
func (a *githubApp) token(ctx context.Context) (string, error) {
	appTokens.mu.Lock()
	if appTokens.held == nil {
		appTokens.held = map[[sha256.Size]byte]*appToken{}
	}
	t, ok := appTokens.held[a.digest]
	if !ok {
		t = &appToken{turn: make(chan struct{}, 1)}
		appTokens.held[a.digest] = t
	}
	appTokens.mu.Unlock()

	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", fmt.Errorf("getting a GitHub App token: %w", ctx.Err())
	}
	defer func() { <-t.turn }()
	now := time.Now()
	if t.token == "" || now.After(t.expires.Add(-renewBefore)) {
		token, expires, err := a.mint(ctx, now)
		if err != nil {
			return "", fmt.Errorf("getting a GitHub App token: %w", err)
		}
		t.token, t.expires = token, expires
		time.AfterFunc(time.Until(expires), func() { dropToken(a.digest, t) })
	}
	return t.token, nil
}

// dropToken forgets an expired token, unless it was renewed.
func dropToken(key [sha256.Size]byte, t *appToken) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if time.Now().Before(t.expires) {
		return
	}
	t.token = ""
	appTokens.mu.Lock()
	defer appTokens.mu.Unlock()
	if appTokens.held[key] == t {
		delete(appTokens.held, key)
	}
}

func (a *githubApp) mint(ctx context.Context, now time.Time) (string, time.Time, error) {
	jwt, err := a.jwt(now)
	if err != nil {
		return "", time.Time{}, err
	}
	installation := a.installation
	if installation == "" {
		if installation, err = a.findInstallation(ctx, jwt); err != nil {
			return "", time.Time{}, err
		}
	}
	var answer struct {
		Token   string    `json:"token"`
		Expires time.Time `json:"expires_at"`
	}
	if err := a.call(ctx, http.MethodPost, "/app/installations/"+url.PathEscape(installation)+"/access_tokens", jwt, &answer); err != nil {
		return "", time.Time{}, err
	}
	if answer.Token == "" || answer.Expires.IsZero() {
		return "", time.Time{}, errors.New("the API's answer holds no token")
	}
	return answer.Token, answer.Expires, nil
}

// findInstallation looks the owner up as an organization, then as a user.
func (a *githubApp) findInstallation(ctx context.Context, jwt string) (string, error) {
	var answer struct {
		ID json.Number `json:"id"`
	}
	owner := url.PathEscape(a.owner)
	err := a.call(ctx, http.MethodGet, "/orgs/"+owner+"/installation", jwt, &answer)
	var status statusCode
	if errors.As(err, &status) && status == http.StatusNotFound {
		err = a.call(ctx, http.MethodGet, "/users/"+owner+"/installation", jwt, &answer)
	}
	return answer.ID.String(), err
}

// statusCode is an answer that is not a success; what the body says is left out.
type statusCode int

func (s statusCode) Error() string {
	return fmt.Sprintf("the API answered %d %s", int(s), http.StatusText(int(s)))
}

func (s statusCode) Is(target error) bool {
	return target == ErrRefused && (s == http.StatusUnauthorized || s == http.StatusNotFound)
}

func (a *githubApp) call(ctx context.Context, method, path, jwt string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(nil))
	if err != nil {
		return errors.New("malformed API address")
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("Authorization", "Bearer "+jwt)
	resp, err := a.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return statusCode(resp.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return errors.New("the API's answer broke off")
	}
	if json.Unmarshal(body, into) != nil {
		return errors.New("the API's answer is not what it documents")
	}
	return nil
}

// jwt signs who the app is. It is dated back a minute for clocks that differ, and lives less than the ten minutes
// that GitHub allows.
func (a *githubApp) jwt(now time.Time) (string, error) {
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`))
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": a.id})
	if err != nil {
		return "", err
	}
	signed := head + "." + base64.RawURLEncoding.EncodeToString(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}
