package auditingest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// freshFor is how old the last fact may be: longer than the 30 s for which an API server gathers a batch.
const freshFor = 5 * time.Minute

// selfTest tells whether facts arrive on a route.
func (f *function) selfTest(w http.ResponseWriter, r *http.Request, route string) {
	ctx, cancel := context.WithTimeout(r.Context(), f.cfg.StoreTimeout)
	defer cancel()
	heard, err := f.store.RoutesHeard(ctx, []string{route})
	if err != nil {
		f.tel.Log.Error("self-test failed", "route", route, "error", err)
		f.unavailable(w, causeStore, errors.New("the store does not answer"))
		return
	}
	out := struct {
		Route    string     `json:"route"`
		Arriving bool       `json:"arriving"`
		LastFact *time.Time `json:"lastFact,omitempty"`
		Meaning  string     `json:"meaning"`
	}{Route: route}
	at, ok := heard[route]
	switch {
	case !ok:
		out.Meaning = "no fact ever came on this route: is the audit webhook configured with this path and a token that opens it, and does the policy record writes?"
	case f.now().Sub(at) > freshFor:
		out.LastFact = &at
		out.Meaning = "no fact came in the last 5 minutes: change something, wait for the API server to send its batch, and ask again"
	default:
		out.LastFact, out.Arriving = &at, true
		out.Meaning = "facts arrive"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // the caller has gone: nobody to tell
}
