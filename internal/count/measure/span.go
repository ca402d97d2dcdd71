package measure

// Span bounds the time in which all sessions were at work, on the run clock. If a session with work left is told to end early, its last start and
// last end are no earlier than that time. The zero Span is empty: the identity of Merge.
type Span struct {
	Sessions  uint64 // sessions that started an op
	First     int64  // first start of any session
	LastFirst int64  // latest first start of a session
	FirstLast int64  // earliest last end of a session
	Last      int64  // last end of any session
	FirstOut  int64  // earliest last start of a session: until then every session had work for all of its slots
	Turn      int64  // sum over sessions of the mean turn, that is, the mean time that an op and the think time after it took of a slot; ns
	Losers    uint64 // sessions that lost time ([Totals.AddLost])
	LostFrom  int64  // when the first of them first lost time; 0 if none did
}

// Session adds a session whose first op started at first and whose last op ended at last.
func (s *Span) Session(first, last int64) { s.Busy(first, last, last, last-first) }

// Busy is Session for a session whose last start, out, and mean turn length are known.
func (s *Span) Busy(first, out, last, turn int64) {
	s.Merge(&Span{Sessions: 1, First: first, LastFirst: first, FirstLast: last, Last: last, FirstOut: out, Turn: turn})
}

// Lose adds that a session lost time, for the first time at from. Busy or Session must add the session, too.
func (s *Span) Lose(from int64) {
	if s.Losers == 0 || from < s.LostFrom {
		s.LostFrom = from
	}
	s.Losers++
}

// Merge adds the sessions of o. Each session must be in only one Span of a step.
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
		s.FirstOut = min(s.FirstOut, o.FirstOut)
		s.Turn += o.Turn
		if s.Losers == 0 || o.Losers > 0 && o.LostFrom < s.LostFrom {
			s.LostFrom = o.LostFrom
		}
		s.Losers += o.Losers
	}
}
