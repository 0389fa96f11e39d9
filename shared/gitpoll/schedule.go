package gitpoll

import "sync"

// schedule hands out work: hosts in turn, never more than perHost items of one host at a time.
type schedule[T any] struct {
	mu      sync.Mutex
	wake    sync.Cond
	perHost int
	left    int             // not handed out yet
	ready   []*hostQueue[T] // hosts that may start another item
}

type hostQueue[T any] struct {
	host    string
	items   []T
	running int
	waiting bool // not in ready though items are left: as many are running as may
}

// newSchedule takes the items of each host, and its hosts in the order of their first item.
func newSchedule[T any](perHost int, hosts []string, items map[string][]T) *schedule[T] {
	s := &schedule[T]{perHost: perHost}
	s.wake.L = &s.mu
	for _, host := range hosts {
		s.left += len(items[host])
		s.ready = append(s.ready, &hostQueue[T]{host: host, items: items[host]})
	}
	return s
}

// take waits for an item that may start. ok is false when all have been handed out.
func (s *schedule[T]) take() (q *hostQueue[T], item T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) == 0 && s.left > 0 {
		s.wake.Wait()
	}
	if s.left == 0 {
		return nil, item, false
	}
	q, s.ready = s.ready[0], s.ready[1:]
	item, q.items = q.items[0], q.items[1:]
	q.running++
	if s.left--; s.left == 0 {
		s.wake.Broadcast() // nobody needs to wait any longer
	}
	s.offer(q)
	return q, item, true
}

// done says that an item has ended.
func (s *schedule[T]) done(q *hostQueue[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.running--
	if q.waiting {
		q.waiting = false
		s.offer(q)
		s.wake.Signal()
	}
}

// offer puts a host back in line, if it has items left and may run another. s.mu is held.
func (s *schedule[T]) offer(q *hostQueue[T]) {
	switch {
	case len(q.items) == 0:
	case q.running >= s.perHost:
		q.waiting = true
	default:
		s.ready = append(s.ready, q)
	}
}
