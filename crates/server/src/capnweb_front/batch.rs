//! An HTTP batch: a message of the protocol in each line, all of them sent before anything is answered.

use super::{client::Client, driver::Driver, outbox::Waiting};
use crate::router::RemoteCommand;
use coracle_capnweb::Limits;
use std::rc::Rc;
use tokio::sync::mpsc;

/// Answers a batch. What the client is told counts as held until it is dropped.
pub(super) async fn answer(
    body: &str,
    client: &Rc<Client>,
    commands: mpsc::UnboundedReceiver<RemoteCommand>,
    limits: Limits,
) -> Vec<Waiting> {
    let (mut driver, mut events) = Driver::new(client, commands, limits);
    let outbox = driver.outbox();
    for line in body.lines().filter(|line| !line.is_empty()) {
        driver.receive(line);
        if driver.closed().is_some() {
            break;
        }
        // Others have their turns, and calls begin in between.
        tokio::task::yield_now().await;
    }
    driver.end_input();
    while driver.closed().is_none() && !driver.is_idle() {
        let event = events.next().await;
        driver.on_event(event);
        if client.standing.is_given_up() {
            driver.abort("too many logins have failed");
        }
    }
    std::iter::from_fn(|| outbox.pop()).collect()
}
