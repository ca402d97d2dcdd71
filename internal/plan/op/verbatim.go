package op

// Verbatim makes values from bytes that exist already, such as those of a reply. A program that puts values that it has read keeps one for each slot
// and sets it as the request's Value.Maker. The bytes must last until the request is sent; an executor that hands requests over copies them.
type Verbatim struct{ Bytes []byte }

// Append implements [driver.Maker]. Every seed has the same bytes.
func (v *Verbatim) Append(dst []byte, _ uint64) []byte { return append(dst, v.Bytes...) }
