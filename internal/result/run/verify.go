package run

import "fmt"

// Verify is what a phase that reads what earlier phases have put found of their acknowledged writes: lost = missing + older.
type Verify struct {
	Keys    uint64 `json:"keys"` // that were put and acknowledged
	Lost    uint64 `json:"lost"`
	Missing uint64 `json:"missing"` // of Lost: the key is not there
	Older   uint64 `json:"older"`   // of Lost: its value is older than the last one that was acknowledged
	Newer   uint64 `json:"newer"`   // not lost: its value was put later, and never acknowledged
	Unread  uint64 `json:"unread"`  // their get failed

	Examples []LostWrite `json:"examples"` // some of Lost, the last to be acknowledged
}

// LostWrite is an acknowledged write that is gone.
type LostWrite struct {
	Key          string   `json:"key"`
	Phase        string   `json:"phase"`           // in which it was acknowledged, and
	AckedSeconds float64  `json:"acked_seconds"`   // how long after that phase's origin
	OlderSeconds *float64 `json:"older_seconds"`   // how long before it the value was put that is there now; null: the key is missing
	Event        string   `json:"event,omitempty"` // of Phase, that was near; absent: none was
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
