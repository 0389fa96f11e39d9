package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Player sends what the API server of the session sent: audit batches and admission reviews.
type Player struct {
	Session *Session
	Clock   *Clock
	Client  *http.Client // with a timeout

	AuditURL       string // what the route is added to: http://…/audit-webhook
	AuditToken     string
	Route          string // where every batch goes, when not to the route it came by
	AdmissionURL   string // empty: no reviews are sent
	AdmissionToken string
	// Sent, when set, hears of every POST and its answer.
	Sent func(Sent)

	queue []delivery
	ready bool
}

// Sent is one POST that was answered.
type Sent struct {
	At     time.Duration
	Route  string // of an audit batch; "" for a review
	Events int    // in an audit batch
	Tries  int
	Status int
	Answer []byte // at most 64 KiB
}

type delivery struct {
	at    time.Duration
	route string
	body  []byte
}

// Play sends everything when the clock reaches its time, one POST after the other, and ends with the session. A
// POST that is answered with an error is tried five times in all, as the API server does, and is then lost: that is
// an error only here.
func (p *Player) Play(ctx context.Context) error {
	p.prepare()
	for len(p.queue) > 0 {
		d := p.queue[0]
		if err := p.Clock.Wait(ctx, d.at); err != nil {
			return err
		}
		if err := p.send(ctx, d); err != nil {
			return err
		}
		p.queue = p.queue[1:]
	}
	return nil
}

// AdvanceTo moves the clock to a time by hand and sends on the way what was due.
func (p *Player) AdvanceTo(ctx context.Context, at time.Duration) error {
	p.prepare()
	for len(p.queue) > 0 && p.queue[0].at <= at {
		d := p.queue[0]
		p.Clock.Set(d.at)
		if err := p.send(ctx, d); err != nil {
			return err
		}
		p.queue = p.queue[1:]
	}
	p.Clock.Set(at)
	return ctx.Err()
}

// prepare puts batches and reviews into one order. A batch that the receiver of the recording refused is sent like
// any other, and so comes twice.
func (p *Player) prepare() {
	if p.ready {
		return
	}
	p.ready = true
	for _, a := range p.Session.Audit {
		p.queue = append(p.queue, delivery{a.At, cmp.Or(p.Route, a.Route), a.Body})
	}
	if p.AdmissionURL != "" {
		for _, r := range p.Session.Admission {
			p.queue = append(p.queue, delivery{r.At, "", r.Body})
		}
	}
	slices.SortStableFunc(p.queue, func(a, b delivery) int { return cmp.Compare(a.at, b.at) })
}

const tries = 5

func (p *Player) send(ctx context.Context, d delivery) error {
	to, token := p.AdmissionURL, p.AdmissionToken
	sent := Sent{At: d.at, Route: d.route}
	if d.route != "" {
		to, token = strings.TrimSuffix(p.AuditURL, "/")+"/"+url.PathEscape(d.route), p.AuditToken
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		_ = json.Unmarshal(d.body, &list) // a damaged batch is sent all the same
		sent.Events = len(list.Items)
	}
	for sent.Tries = 1; ; sent.Tries++ {
		code, body, err := p.post(ctx, to, token, d.body)
		sent.Status, sent.Answer = code, body
		if err == nil && code < 300 {
			break
		}
		if sent.Tries == tries || ctx.Err() != nil {
			if err == nil {
				err = fmt.Errorf("answered %d: %.200s", code, body)
			}
			return fmt.Errorf("post recorded at %v, after %d tries: %w", d.at, sent.Tries, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(250<<sent.Tries) * time.Millisecond):
		}
	}
	if p.Sent != nil {
		p.Sent(sent)
	}
	return nil
}

func (p *Player) post(ctx context.Context, to, token string, body []byte) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, answer, err
}
