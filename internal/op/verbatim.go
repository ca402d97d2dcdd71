package op

// Verbatim makes values of bytes that are there already, such as those of a reply: a program that puts what it has read keeps one for each slot, and
// names it as its request's Value.Maker. The bytes have to last until the request was sent; an executor that hands requests over keeps them for longer.
type Verbatim struct{ Bytes []byte }

// Append implements [driver.Maker]. Every seed has the same bytes.
func (v *Verbatim) Append(dst []byte, _ uint64) []byte { return append(dst, v.Bytes...) }
