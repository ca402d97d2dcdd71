package measure

// Span bounds the time in which all sessions were at work, on the run clock. A session that is told to end early while it has work has its last start
// and its last end no earlier than that. The zero Span is empty: the identity of Merge.
type Span struct {
	Sessions  uint64 // sessions that started an op
	First     int64  // first start of any session
	LastFirst int64  // latest first start of a session
	FirstLast int64  // earliest last end of a session
	Last      int64  // last end of any session
	FirstOut  int64  // earliest last start of a session: until then every session had work for all of its slots
	Turn      int64  // sum of the sessions' mean turns: how long each slot had an op, or paused after it, by how many ops there were; ns
	Losers    uint64 // sessions that lost time ([Totals.AddLost])
	LostFrom  int64  // when the first of them began to; 0 if none did
}

// Session adds a session whose first op started at first and whose last op ended at last.
func (s *Span) Session(first, last int64) { s.Busy(first, last, last, last-first) }

// Busy is Session for a session whose last start, out, and mean turn length are known.
func (s *Span) Busy(first, out, last, turn int64) {
	s.Merge(&Span{Sessions: 1, First: first, LastFirst: first, FirstLast: last, Last: last, FirstOut: out, Turn: turn})
}

// Lose adds that a session, which Busy or Session adds too, lost time, at first from a time on.
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
