"""An https origin on loopback whose certificate a process believes when SSL_CERT_FILE names the root: pages by path, each
with its headers, and what was asked for. It serves whatever a test puts there and nothing else."""

import datetime
import ipaddress
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate(folder):
    """Who is believed, and for localhost a certificate by it with its key: three files."""
    now = datetime.datetime.now(datetime.timezone.utc)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]

    def made(subject, key, issuer, signer, *extensions):
        name = lambda text: x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
        builder = (x509.CertificateBuilder().subject_name(name(subject)).issuer_name(name(issuer))
                   .public_key(key.public_key()).serial_number(x509.random_serial_number())
                   .not_valid_before(now - datetime.timedelta(hours=1)).not_valid_after(now + datetime.timedelta(hours=1)))
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    bundle, public, private = folder / "root.pem", folder / "origin.pem", folder / "origin.key"
    bundle.write_bytes(made("root", root, "root", root, x509.BasicConstraints(ca=True, path_length=0)))
    public.write_bytes(made("origin", leaf, "root", root, x509.BasicConstraints(ca=False, path_length=None),
                            x509.SubjectAlternativeName(names)))
    private.write_bytes(leaf.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                           serialization.NoEncryption()))
    return bundle, public, private


class Origin:
    """One origin. `port` 0 picks one; 443 needs leave to listen there."""

    def __init__(self, folder, files, port=0):
        self.pages, self.asked = {}, []
        handler = type("Handler", (_Handler,), {"origin": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files[1:])
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        port = self.server.server_address[1]
        self.url = "https://localhost" if port == 443 else f"https://localhost:{port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def put(self, path, body, headers=()):
        self.pages[path] = (body if isinstance(body, bytes) else body.encode(), list(headers))

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    origin = None

    def do_GET(self):
        self.origin.asked.append(self.path)
        body, headers = self.origin.pages.get(self.path, (None, []))
        self.send_response(404 if body is None else 200)
        for name, value in headers or [("Content-Type", "application/json")]:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass
