package fleet

// certificateControllers sign approved requests for certificates, and remove old requests: an hour after the
// decision, or a day after the creation. None approves.
const certificateControllers = "certificatesigningrequest-signing-controller,certificatesigningrequest-cleaner-controller"

// Files of the authority of clients.
const (
	clientAuthorityCertificate = "clients.crt"
	clientAuthorityKey         = "clients.key"
)

// ClientAuthority is the authority of clients' certificates; nil without option Certificates.
func (c *Cluster) ClientAuthority() *Authority { return c.clients }

// writeClientAuthority writes the authority of clients' certificates, if the options request it. It differs from the
// one of servers: a server's certificate authenticates no client.
func (c *Cluster) writeClientAuthority() error {
	if !c.options.Certificates {
		return nil
	}
	authority, err := NewAuthority(c.Name + "-clients")
	if err != nil {
		return err
	}
	c.clients = authority
	key, err := encodeKey(authority.key)
	if err != nil {
		return err
	}
	return writeFiles(c.folder, map[string][]byte{clientAuthorityCertificate: authority.PEM, clientAuthorityKey: key})
}
