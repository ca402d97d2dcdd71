package measure

// Span bounds the time in which all sessions were at work, on the run clock. The zero Span is empty: the identity of Merge.
type Span struct {
	Sessions  uint64 // that started an op
	First     int64  // first start of any session
	LastFirst int64  // latest first start over sessions
	FirstLast int64  // earliest last end over sessions
	Last      int64  // last end of any session
}

// Session adds a session whose first op started at first and whose last op ended at last.
func (s *Span) Session(first, last int64) {
	s.Merge(&Span{Sessions: 1, First: first, LastFirst: first, FirstLast: last, Last: last})
}

// Merge adds the sessions of o. A session is in one Span of a step only.
func (s *Span) Merge(o *Span) {
	switch {
	case o.Sessions == 0:
	case s.Sessions == 0:
		*s = *o
	default:
		s.Sessions += o.Sessions
		s.First = min(s.First, o.First)
		s.LastFirst = max(s.LastFirst, o.LastFirst)
		s.FirstLast = min(s.FirstLast, o.FirstLast)
		s.Last = max(s.Last, o.Last)
	}
}
