//! Both doors, in every form a gateway has for a request, before a scripted authority. The default of everything is the
//! honest one; a test changes the one thing it is about, and looks at every door.

mod allowed;
mod cast;
mod cut;
mod hostile;
mod hung_up;
mod policed;
mod refused;
mod rounds;
mod sessions;
mod wire;
