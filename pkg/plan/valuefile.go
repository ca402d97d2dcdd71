package plan

// valueFile reads which file holds the values, and the number and sizes of the values in it.
func (b *block) valueFile(d *Values) {
	b.without("the values are those of the file", "Leave it out.", "size", "fill", "compressibility", "record")
	f := &ValueFile{Encoding: "text", Pick: Random, Count: 1}
	d.File = f
	b.entryFile(&f.EntryFile, "value")
	b.Text("encoding", &f.Encoding)
	b.Text("pick", &f.Pick)
	if b.r.values == nil || !b.r.readable(b.Path, &f.EntryFile) || b.r.Wrong[b.Path+".encoding"] || f.Encoding != "text" && f.Encoding != "base64" {
		return
	}
	facts, err := b.r.values(f.Path, f.Form, f.Field, f.Encoding)
	if err != nil {
		b.Bad("file", err.Error(), "")
		return
	}
	f.SHA256, f.Length, f.Bytes, f.Count, f.Least, f.Largest = facts.SHA256, facts.Length, facts.Bytes, facts.Count, facts.Least, facts.Largest
}

// valueFile checks the file of a dataset's values.
func (v *validator) valueFile(at part, d *Values) {
	f := d.File
	if f == nil {
		return
	}
	v.entryFile(at, &f.EntryFile, "values", f.Count)
	v.oneOf(at, "encoding", f.Encoding, "text", "base64")
	v.oneOf(at, "pick", f.Pick, Random, ByKey)
	path := at.path + ".file"
	switch {
	case d.Record != nil || d.Sizes != nil || d.Compressibility != nil:
		v.fault(at.where+": values of a file and other values", "Write one of them.", path)
	case f.Count < 1 || f.Least < 0 || f.Least > f.Largest || d.Size != d.header()+f.Largest || f.SHA256 != "" && (f.Mean() < float64(f.Least) || f.Mean() > float64(f.Largest)):
		v.fault(at.where+": impossible attributes of the file", "Check the plan's text again.", path)
	}
}
