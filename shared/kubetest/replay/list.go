package replay

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// continuation is what a continue token holds.
type continuation struct {
	RV    uint64 `json:"rv"`
	Start string `json:"start"` // the key of the last item sent
}

const tooOldList = "The resourceVersion for the provided list is too old."

// list serves a LIST: of now, of an exact version, or the next page of an earlier one.
func (s *Server) list(w http.ResponseWriter, r *http.Request, st *store, f filter) {
	q := r.URL.Query()
	at := s.timeline.current(s.clock.Now())
	asked := version(q.Get("resourceVersion"))
	start := ""
	switch match := q.Get("resourceVersionMatch"); {
	case q.Get("continue") != "":
		var c continuation
		raw, err := base64.RawURLEncoding.DecodeString(q.Get("continue"))
		if err != nil || json.Unmarshal(raw, &c) != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "continue key is not valid")
			return
		}
		at, start = c.RV, c.Start
	case match == "Exact" || match == "" && asked > 0 && q.Get("limit") != "":
		if asked == 0 {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "resourceVersionMatch Exact is forbidden for resourceVersion 0")
			return
		}
		if !s.reach(r, asked) {
			tooLarge(w, asked, at)
			return
		}
		at = asked
	case asked > at:
		if !s.reach(r, asked) {
			tooLarge(w, asked, at)
			return
		}
		at = s.timeline.current(s.clock.Now())
	}
	if s.forgotten(at) || at < st.base() {
		refuse(w, http.StatusGone, metav1.StatusReasonExpired, tooOldList)
		return
	}

	items := st.list(at, f)
	for len(items) > 0 && start != "" && key(items[0]) <= start {
		items = items[1:]
	}
	meta := map[string]any{"resourceVersion": format(at)}
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && len(items) > limit {
		token, _ := json.Marshal(continuation{at, key(items[limit-1])})
		meta["continue"] = base64.RawURLEncoding.EncodeToString(token)
		if q.Get("labelSelector") == "" && q.Get("fieldSelector") == "" {
			meta["remainingItemCount"] = len(items) - limit
		}
		items = items[:limit]
	}
	objects := make([]any, len(items))
	for i, obj := range items {
		objects[i] = obj.Object
	}
	apiVersion := st.GroupVersion().String()
	answer(w, map[string]any{"kind": st.Kind + "List", "apiVersion": apiVersion, "metadata": meta, "items": objects})
}

func tooLarge(w http.ResponseWriter, asked, current uint64) {
	refuse(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version: "+format(asked)+", current: "+format(current))
}

func (s *Server) forgotten(rv uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rv <= s.history && s.history > 0
}
