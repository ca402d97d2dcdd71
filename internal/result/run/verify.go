package run

import "fmt"

// Verify says what a phase that looks for earlier phases' acknowledged writes has found: lost = missing + older.
type Verify struct {
	Keys    uint64 `json:"keys"` // keys that were put and acknowledged
	Lost    uint64 `json:"lost"`
	Missing uint64 `json:"missing"` // those of Lost whose key is not there
	Older   uint64 `json:"older"`   // those of Lost whose value is older than the last one that was acknowledged
	Newer   uint64 `json:"newer"`   // keys that are not lost: their value was put later, and never acknowledged
	Unread  uint64 `json:"unread"`  // keys whose get failed

	Examples []LostWrite `json:"examples"` // those of Lost that were acknowledged last
}

// LostWrite is an acknowledged write that is gone.
type LostWrite struct {
	Key          string   `json:"key"`
	Phase        string   `json:"phase"`           // the phase in which it was acknowledged, and
	AckedSeconds float64  `json:"acked_seconds"`   // how long after that phase's origin
	OlderSeconds *float64 `json:"older_seconds"`   // how much earlier the value that is there now was put; null if the key is missing
	Event        string   `json:"event,omitempty"` // an event of Phase that was near; absent if none was
}

func (v *Verify) check() error {
	switch {
	case v == nil:
	case v.Lost != v.Missing+v.Older:
		return fmt.Errorf("verify: %d lost, but %d missing and %d older", v.Lost, v.Missing, v.Older)
	case v.Lost+v.Newer+v.Unread > v.Keys:
		return fmt.Errorf("verify: of %d keys %d lost, %d newer and %d unread", v.Keys, v.Lost, v.Newer, v.Unread)
	case uint64(len(v.Examples)) > v.Lost:
		return fmt.Errorf("verify: %d examples of %d that are lost", len(v.Examples), v.Lost)
	}
	return nil
}
