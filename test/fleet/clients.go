package fleet

// certificateControllers sign approved requests for certificates, and remove old requests: an hour after they were decided, or a day
// after they were made. None approves.
const certificateControllers = "certificatesigningrequest-signing-controller,certificatesigningrequest-cleaner-controller"

// Files of the authority of clients.
const (
	clientAuthorityCertificate = "clients.crt"
	clientAuthorityKey         = "clients.key"
)

// writeClientAuthority makes the authority that clients' certificates are of, where the options ask for it. It is another than the one
// of servers: nobody becomes a client by a server's certificate.
func (c *Cluster) writeClientAuthority() error {
	if !c.options.Certificates {
		return nil
	}
	authority, err := NewAuthority(c.Name + "-clients")
	if err != nil {
		return err
	}
	key, err := encodeKey(authority.key)
	if err != nil {
		return err
	}
	return writeFiles(c.folder, map[string][]byte{clientAuthorityCertificate: authority.PEM, clientAuthorityKey: key})
}
