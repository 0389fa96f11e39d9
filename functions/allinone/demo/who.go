package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"
	"time"

	"github.com/tidemark-dev/tidemark/shared/history"
	"github.com/tidemark-dev/tidemark/shared/kubetest/replay/verdict"
)

// busiest is the object with the most changes; nil when there was none. Of several it is the one that got there first.
func (s *stage) busiest() []verdict.Change {
	var most []verdict.Change
	changes := map[string][]verdict.Change{}
	for _, c := range s.expected.Changes {
		id := c.GroupResource.String() + " " + c.Namespace + "/" + c.Name
		changes[id] = append(changes[id], c)
		if len(changes[id]) > len(most) {
			most = changes[id]
		}
	}
	return most
}

// answer is what we read of who's.
type answer struct {
	Changes    []struct{ Commit, Verb, ResourceVersion, Author, Class, Tier string }
	Incomplete []string
}

func (s *stage) ask(ctx context.Context, question string) (*answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.programURL+question, nil)
	if err != nil {
		return nil, err
	}
	if s.readToken != "" {
		request.Header.Set("Authorization", "Bearer "+s.readToken)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	out := &answer{}
	return out, json.NewDecoder(response.Body).Decode(out)
}

// askWho asks the program, which still runs, who changed the object with the most changes, and prints the answer. It
// has to name the versions that there were, the newest first, and nobody who did not make them.
func (s *stage) askWho(ctx context.Context) error {
	want := s.busiest()
	if want == nil {
		return nil
	}
	o := want[0]
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	question := "/who?" + url.Values{"resource": {o.GroupResource.String()}, "namespace": {o.Namespace}, "name": {o.Name}, "limit": {"500"}}.Encode()
	answer, err := s.ask(ctx, question)
	for try := 1; err == nil && len(answer.Incomplete) > 0 && try < 10; try++ {
		answer, err = s.ask(ctx, question) // a branch could not be read at that moment
	}
	if err != nil {
		return fmt.Errorf("ask who: %w", err)
	}

	fmt.Printf("\n$ curl '…%s'\n\n", question)
	w := tabwriter.NewWriter(os.Stdout, 4, 0, 2, ' ', 0)
	var faults []error
	left := want
	for _, c := range answer.Changes {
		fmt.Fprintf(w, "    %s\t%s\t%s\t%s %s\t%.7s\n", c.Verb, c.ResourceVersion, c.Author, c.Class, c.Tier, c.Commit)
		if c.Class == history.ByReplay {
			continue
		}
		if len(left) == 0 || left[len(left)-1].RV != c.ResourceVersion {
			faults = append(faults, fmt.Errorf("who tells of version %s of %s out of place", c.ResourceVersion, o.Name))
			continue
		}
		truth := left[len(left)-1]
		left = left[:len(left)-1]
		if c.Author != "" && truth.Known && c.Author != truth.Truth.Owner() {
			faults = append(faults, fmt.Errorf("who names %s for version %s of %s, and it was %s", c.Author, c.ResourceVersion, o.Name, truth.Truth.Owner()))
		}
	}
	if len(left) > 0 {
		faults = append(faults, fmt.Errorf("who leaves out %d changes of %s", len(left), o.Name))
	}
	faults = append(faults, w.Flush())
	fmt.Println()
	return errors.Join(faults...)
}
